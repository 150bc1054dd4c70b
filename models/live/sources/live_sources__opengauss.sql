{{ config(schema = 'sources', alias = 'opengauss') }}

{{ debezium_live(silver = ref('sources__opengauss')) }}
