{{ config(schema = 'shop', alias = 'coupons') }}

{{ debezium_live(silver = ref('shop__coupons')) }}
