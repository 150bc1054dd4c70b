{{ config(schema = 'shop', alias = 'certificates') }}

{{ debezium_live(silver = ref('shop__certificates')) }}
