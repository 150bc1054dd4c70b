{{ config(schema = 'billing', alias = 'tariffs') }}

{{ debezium_live(silver = ref('billing__tariffs')) }}
