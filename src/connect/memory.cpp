// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "connect/memory.hpp"

#include "net/url_option_parser.hpp"

#include <colock/memory/adapter.hpp>

namespace colock::inline v0::detail {

namespace {

constexpr remote::url_option<memory::options> all_options[] = {
    {"sweep_interval", remote::set_member<&memory::options::sweep_interval>},
    {"sweep_batch", remote::set_member<&memory::options::sweep_batch>},
};

std::shared_ptr<adapter> make_memory(
    const asio::any_io_executor& executor, std::string_view text, const connect_options& common_options)
{
    const auto path = text.substr(text.find(':') + 1);
    const auto full = path.starts_with("//") ? std::string(text) : "memory://" + std::string(path);
    const remote::url url(full, "memory", "memory:");
    if (url.with_query({}) != "memory://")
        url.refuse("the URL has something behind its scheme; write memory:");
    memory::options options;
    const auto rest = remote::take_url_options(url, all_options, options);
    remote::url(rest, "memory", "memory:").refuse_parameters(remote::names_of(all_options));
    if (!common_options.user.empty() || !common_options.password.empty() || common_options.tls != tls_options{})
        url.refuse("memory has no user, no password and no TLS");
    return memory::make_adapter(executor, options);
}

} // namespace

constinit const url_backend memory_by_url{.schemes = {"memory"}, .forms = "memory:", .make = make_memory};

} // namespace colock::inline v0::detail
