{{ config(schema = 'sources', alias = 'pgoutput') }}

{{ debezium_live(silver = ref('sources__pgoutput')) }}
