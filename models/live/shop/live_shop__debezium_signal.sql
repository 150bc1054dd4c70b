{{ config(schema = 'shop', alias = 'debezium_signal') }}

{{ debezium_live(silver = ref('shop__debezium_signal')) }}
