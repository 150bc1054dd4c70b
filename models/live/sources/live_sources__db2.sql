{{ config(schema = 'sources', alias = 'db2') }}

{{ debezium_live(silver = ref('sources__db2')) }}
