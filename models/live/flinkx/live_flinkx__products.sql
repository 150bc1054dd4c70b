{{ config(schema = 'flinkx', alias = 'products') }}

{{ debezium_live(silver = ref('flinkx__products')) }}
