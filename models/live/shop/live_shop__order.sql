{{ config(schema = 'shop', alias = 'order') }}

{{ debezium_live(silver = ref('shop__order')) }}
