{{ config(schema = 'sources', alias = 'yashandb') }}

{{ debezium_live(silver = ref('sources__yashandb')) }}
