{{ config(schema = 'sources', alias = 'spanner') }}

{{ debezium_live(silver = ref('sources__spanner')) }}
