{{ config(alias = 'shop__customers') }}

{{ debezium_history(
    changes = ref('stg_shop__customers'),
    keys = ['customer_id'],
) }}
