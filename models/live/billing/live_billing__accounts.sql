{{ config(schema = 'billing', alias = 'accounts') }}

{{ debezium_live(silver = ref('billing__accounts')) }}
