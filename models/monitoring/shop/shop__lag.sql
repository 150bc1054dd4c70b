{{ debezium_lag(
    events = source('bronze', 'shop'),
    tables = {
        'public.all_types': [ref('stg_shop__all_types'), ref('shop__all_types')],
        'public.customers': [ref('stg_shop__customers'), ref('shop__customers')],
        'public.Gift Boxes': [ref('stg_shop__gift_boxes'), ref('shop__gift_boxes')],
        'public.orders': [ref('stg_shop__orders'), ref('shop__orders')],
        'public.page_views': [ref('stg_shop__page_views'), ref('shop__page_views')],
        'public.products': [ref('stg_shop__products'), ref('shop__products')],
        'public.reviews': [ref('stg_shop__reviews'), ref('shop__reviews')],
        'public.stock': [ref('stg_shop__stock'), ref('shop__stock')],
    },
) }}
