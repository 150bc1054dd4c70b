{{ config(schema = 'billing', alias = 'dunning') }}

{{ debezium_live(silver = ref('billing__dunning')) }}
