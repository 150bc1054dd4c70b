{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.coupons'],
    connector = 'postgresql',
    table = ['public', 'coupons'],
    keys = ['coupon_id'],
    columns = {
        'coupon_id': 'int32',
        'code': 'string',
        'percent': 'int16',
    },
) }}
