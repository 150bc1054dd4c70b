{{ config(schema = 'sources', alias = 'carts') }}

{{ debezium_live(silver = ref('sources__carts')) }}
