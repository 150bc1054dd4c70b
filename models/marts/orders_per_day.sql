select
    cast(ordered_at as date) as ordered_on,
    count(*) as orders,
    count(distinct customer_id) as customers,
    sum(total) as total
from {{ ref('live_shop__orders') }}
group by cast(ordered_at as date)
