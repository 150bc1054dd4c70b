{{ config(schema = 'sources', alias = 'yboutput') }}

{{ debezium_live(silver = ref('sources__yboutput')) }}
