{{ config(schema = 'tencent', alias = 'vehicles') }}

{{ debezium_live(silver = ref('tencent__vehicles')) }}
