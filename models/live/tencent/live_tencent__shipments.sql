{{ config(schema = 'tencent', alias = 'shipments') }}

{{ debezium_live(silver = ref('tencent__shipments')) }}
