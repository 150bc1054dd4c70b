{{ config(schema = 'tencent', alias = 'slots') }}

{{ debezium_live(silver = ref('tencent__slots')) }}
