{{ debezium_latest(
    changes = ref('stg_shop__return_slips'),
    keys = ['Slip.No'],
    columns = [
        'Slip.No',
        'Reason',
    ],
) }}
