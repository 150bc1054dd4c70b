{{ config(schema = 'lindorm', alias = 'meters') }}

{{ debezium_live(silver = ref('lindorm__meters')) }}
