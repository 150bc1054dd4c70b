{{ config(schema = 'sources', alias = 'vitess') }}

{{ debezium_live(silver = ref('sources__vitess')) }}
