{{ config(schema = 'billing', alias = 'debezium_signal') }}

{{ debezium_live(silver = ref('billing__debezium_signal')) }}
