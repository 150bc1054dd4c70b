{{ config(schema = 'sources', alias = 'informix') }}

{{ debezium_live(silver = ref('sources__informix')) }}
