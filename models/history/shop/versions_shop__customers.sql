{{ config(materialized = 'view', schema = 'shop_history', alias = 'customers') }}

{{ debezium_as_of(history = ref('history_shop__customers')) }}
