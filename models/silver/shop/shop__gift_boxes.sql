{{ debezium_latest(
    changes = ref('stg_shop__gift_boxes'),
    keys = ['Box Id'],
    columns = [
        'Box Id',
        'select',
        'price.net',
        'back`tick',
        'Größe',
        '名前',
    ],
) }}
