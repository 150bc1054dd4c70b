{{ config(schema = 'billing', alias = 'webhooks') }}

{{ debezium_live(silver = ref('billing__webhooks')) }}
