{{ config(schema = 'shop', alias = 'webhooks') }}

{{ debezium_live(silver = ref('shop__webhooks')) }}
