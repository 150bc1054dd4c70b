{{ debezium_log(
    changes = ref('stg_shop__page_views'),
    columns = [
        'visitor',
        'path',
        'seen_at',
    ],
) }}
