{{ config(schema = 'sources', alias = 'ticdc') }}

{{ debezium_live(silver = ref('sources__ticdc')) }}
