{{ config(schema = 'sources', alias = 'cassandra') }}

{{ debezium_live(silver = ref('sources__cassandra')) }}
