{{ config(schema = 'sources', alias = 'lines') }}

{{ debezium_live(silver = ref('sources__lines')) }}
