{{ config(schema = 'shop', alias = 'gift_boxes') }}

{{ debezium_live(silver = ref('shop__gift_boxes')) }}
