{{ config(schema = 'sources', alias = 'src_ibmi') }}

{{ debezium_live(silver = ref('sources__src_ibmi')) }}
