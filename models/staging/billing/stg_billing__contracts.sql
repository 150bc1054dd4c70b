{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.contracts'],
    connector = 'mariadb',
    table = ['billing', 'contracts'],
    keys = ['contract_id'],
    columns = {
        'contract_id': 'int32',
        'account_no': 'string',
        'tariff': 'string',
        'signed_on': 'Date',
        'discount': 'Decimal(5,2)',
    },
) }}
