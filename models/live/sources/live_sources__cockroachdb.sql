{{ config(schema = 'sources', alias = 'cockroachdb') }}

{{ debezium_live(silver = ref('sources__cockroachdb')) }}
