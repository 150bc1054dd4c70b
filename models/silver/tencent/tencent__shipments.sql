{{ debezium_latest(
    changes = ref('stg_tencent__shipments'),
    keys = ['id'],
    columns = [
        'id',
        'carrier',
        'freight',
        'packed_at',
        'fragile',
    ],
) }}
