{{ config(schema = 'billing', alias = 'order') }}

{{ debezium_live(silver = ref('billing__order')) }}
