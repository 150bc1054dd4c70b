{{ config(materialized = 'incremental', incremental_strategy = 'debezium_merge', file_format = 'iceberg') }}

{{ debezium_rejected_events(
    events = source('bronze', 'shop'),
    tables = {
        'public.all_types': [ref('stg_shop__all_types'), ref('shop__all_types')],
        'archive.orders': [ref('stg_shop__archive__orders'), ref('shop__archive__orders')],
        'public.cart_lines': [ref('stg_shop__cart_lines'), ref('shop__cart_lines')],
        'public.carts': [ref('stg_shop__carts'), ref('shop__carts')],
        'public.certificates': [ref('stg_shop__certificates'), ref('shop__certificates')],
        'public.coupons': [ref('stg_shop__coupons'), ref('shop__coupons')],
        'public.customers': [ref('stg_shop__customers'), ref('shop__customers')],
        'public.debezium_signal': [ref('stg_shop__debezium_signal'), ref('shop__debezium_signal')],
        'public.Gift Boxes': [ref('stg_shop__gift_boxes'), ref('shop__gift_boxes')],
        'public.journal': [ref('stg_shop__journal'), ref('shop__journal')],
        'public.order': [ref('stg_shop__order'), ref('shop__order')],
        'public.order_lines': [ref('stg_shop__order_lines'), ref('shop__order_lines')],
        'public.page_views': [ref('stg_shop__page_views'), ref('shop__page_views')],
        'public.products': [ref('stg_shop__products'), ref('shop__products')],
        'public.orders': [ref('stg_shop__public__orders'), ref('shop__public__orders')],
        'public.Return.Slips': [ref('stg_shop__return_slips'), ref('shop__return_slips')],
        'public.reviews': [ref('stg_shop__reviews'), ref('shop__reviews')],
        'public.stock': [ref('stg_shop__stock'), ref('shop__stock')],
        'public.webhooks': [ref('stg_shop__webhooks'), ref('shop__webhooks')],
    },
) }}
