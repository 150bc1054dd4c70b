with orders as (

    select
        customer_id,
        count(*) as orders,
        min(ordered_at) as first_ordered_at
    from {{ ref('live_shop__orders') }}
    group by customer_id

),

changes as (

    select
        customer_id,
        _cdc_changed_at as unchanged_since
    from {{ ref('shop__customers') }}
    where not _cdc_is_deleted

)

select
    customers.customer_id,
    customers.name,
    customers.country,
    orders.first_ordered_at as customer_since,
    changes.unchanged_since,
    coalesce(orders.orders, 0) as orders
from {{ ref('live_shop__customers') }} as customers
inner join changes on customers.customer_id = changes.customer_id
left join orders on customers.customer_id = orders.customer_id
