{{ debezium_latest(
    changes = ref('stg_billing__meter_swaps'),
    keys = ['Swap.No'],
    columns = [
        'Swap.No',
        'Reason',
    ],
) }}
