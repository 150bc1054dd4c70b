{{ config(schema = 'huawei', alias = 'invoice_lines') }}

{{ debezium_live(silver = ref('huawei__invoice_lines')) }}
