{{ debezium_latest(
    changes = ref('stg_tencent__drivers'),
    keys = ['badge'],
    columns = [
        'badge',
        'name',
    ],
) }}
