"""What the samples are about: a shop, its modules, what is tested in each, and the ways in which it fails."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Subject:
    """A module: its names, the prefix of its ids, and what is tested."""

    en: str
    zh: str
    prefix: str
    points_en: tuple[str, ...]
    points_zh: tuple[str, ...]


SUBJECTS = (
    Subject(
        "Login",
        "登录",
        "LOGIN",
        ("Login with a valid password", "Login with a wrong password", "Login by SMS code", "Login stays after reload"),
        ("使用正确密码登录", "使用错误密码登录", "短信验证码登录", "登录状态保持"),
    ),
    Subject(
        "Cart",
        "购物车",
        "CART",
        ("Cart adds an item", "Cart removes an item", "Cart keeps quantities", "Cart merges after sign-in"),
        ("购物车添加商品", "购物车删除商品", "购物车修改数量", "购物车合并"),
    ),
    Subject(
        "Payment",
        "支付",
        "PAY",
        ("Payment by card", "Payment by wallet", "Payment is refunded", "Payment shows a receipt"),
        ("银行卡支付", "钱包支付", "支付退款", "支付凭证显示"),
    ),
    Subject(
        "Order",
        "订单",
        "ORDER",
        ("Order is created", "Order is cancelled", "Order list has pages", "Order export to CSV"),
        ("创建订单", "取消订单", "订单列表分页", "订单导出"),
    ),
    Subject(
        "Search",
        "搜索",
        "SEARCH",
        ("Search by keyword", "Search with filters", "Search suggests words", "Search sorts by price"),
        ("关键字搜索", "搜索筛选条件", "搜索联想词", "搜索结果按价格排序"),
    ),
    Subject(
        "Stock",
        "库存",
        "STOCK",
        ("Stock falls with an order", "Stock warning is sent", "Stock import from file", "Stock is never negative"),
        ("下单扣减库存", "库存预警通知", "库存文件导入", "库存不为负数"),
    ),
)

#: Titles that name no module.
VAGUE_ZH = ("检查提示信息显示", "页面文字拼写检查", "小屏幕布局检查")
PEOPLE_EN = ("Ada", "Grace", "Linus", "Edsger")
PEOPLE_ZH = ("张伟", "李娜", "王芳", "刘洋")


@dataclass(frozen=True)
class Failure:
    """A family of failures: one cause, with other ids, numbers and paths each time."""

    name: str
    subject: int
    severity: str
    en: str
    zh: str
    error: str


FAILURES = (
    Failure(
        "gateway_timeout",
        2,
        "critical",
        "The payment of order {order} never ended: the gateway timed out after {ms} ms",
        "订单 {order} 支付未完成：支付网关 {ms} 毫秒后超时",
        "java.net.SocketTimeoutException: Read timed out after {ms} ms\n"
        "\tat com.shop.pay.GatewayClient.post(GatewayClient.java:118)\n"
        "\tat com.shop.pay.PaymentService.pay(PaymentService.java:64)",
    ),
    Failure(
        "refund_amount",
        2,
        "major",
        "Refund of order {order} is {amount}, which is more than was paid",
        "订单 {order} 退款金额 {amount} 大于实付金额",
        "AssertionError: refund {amount} exceeds payment for order {order}\n"
        '  File "/srv/build/{build}/tests/pay/test_refund.py", line 87, in test_refund',
    ),
    Failure(
        "order_null",
        3,
        "critical",
        "Order {order} shows a blank page (HTTP 500)",
        "打开订单 {order} 详情页白屏，接口返回 500",
        'java.lang.NullPointerException: Cannot invoke "Address.getCity()" because "order.address" is null\n'
        "\tat com.shop.order.OrderView.render(OrderView.java:203)\n"
        "\tat com.shop.order.OrderController.show(OrderController.java:51)",
    ),
    Failure(
        "export_encoding",
        3,
        "minor",
        "The exported file /tmp/export/{build}/orders_{n}.csv shows broken characters",
        "导出文件 /tmp/export/{build}/orders_{n}.csv 打开后中文乱码",
        "",
    ),
    Failure(
        "sms_missing",
        0,
        "major",
        "No SMS code arrived at {phone} within {n} seconds",
        "手机号 {phone} 在 {n} 秒内未收到短信验证码",
        "",
    ),
    Failure(
        "session_lost",
        0,
        "major",
        "Session {build} ended after {n} minutes although it should last 30",
        "会话 {build} 在 {n} 分钟后失效，应保持 30 分钟",
        "RuntimeError: session {build} not found in cache node {n}\n"
        '  File "/srv/app/auth/session.py", line 142, in load_session',
    ),
    Failure(
        "cart_quantity",
        1,
        "minor",
        "Cart shows {n} items, expected {n2} after the change",
        "购物车数量显示 {n}，修改后应为 {n2}",
        "AssertionError: expected {n2} but was {n}\n\tat com.shop.cart.CartTest.keepsQuantity(CartTest.java:77)",
    ),
    Failure(
        "cart_deadlock",
        1,
        "critical",
        "Adding item {n} fails with a server error",
        "添加商品 {n} 时服务器报错，死锁",
        "org.postgresql.util.PSQLException: ERROR: deadlock detected; Process {ms} waits for ShareLock\n"
        "\tat com.shop.cart.CartRepository.save(CartRepository.java:95)",
    ),
    Failure(
        "search_slow",
        4,
        "minor",
        "Search took {ms} ms, allowed are 800 ms",
        "搜索响应时间 {ms} 毫秒，超过 800 毫秒",
        "",
    ),
    Failure(
        "search_index",
        4,
        "major",
        "New product {n} is not found by search",
        "新增商品 {n} 无法被搜索到，索引未更新",
        "IndexError: shard {n} of index products-{build} is read-only\n"
        '  File "/srv/app/search/index.py", line 58, in add_document',
    ),
    Failure(
        "stock_negative",
        5,
        "critical",
        "Stock of product {n} fell to -{n2}",
        "商品 {n} 库存变为 -{n2}，出现超卖",
        "",
    ),
    Failure(
        "stock_import",
        5,
        "trivial",
        "Import of /data/in/{build}/stock_{n}.xlsx stops at row {n2}",
        "导入 /data/in/{build}/stock_{n}.xlsx 在第 {n2} 行中断",
        "ValueError: could not convert string to float: 'n/a' in row {n2}\n"
        '  File "/srv/app/stock/importing.py", line 33, in read_rows',
    ),
)
