{{ config(schema = 'tencent', alias = 'drivers') }}

{{ debezium_live(silver = ref('tencent__drivers')) }}
