{{ debezium_latest(
    changes = ref('stg_shop__coupons'),
    keys = ['coupon_id'],
    columns = [
        'coupon_id',
        'code',
        'percent',
    ],
) }}
