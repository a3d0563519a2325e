// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/tls.hpp"

#include "util/option_errors.hpp"
#include "util/text_escaping.hpp"

#include <colock/error.hpp>

#include <boost/asio/ip/address.hpp>

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <sys/stat.h>

namespace colock::inline v0::remote {

namespace {

[[noreturn]] void refuse_file(std::string reason, const error_code& cause)
{
    throw error(errc::invalid_options, {.cause = cause, .detail = "tls: " + std::move(reason)});
}

void check(const error_code& error, const char* option, const std::string& file)
{
    if (error)
        refuse_file(std::string(option) + " cannot be used: " + colock::detail::quoted(file), error);
}

/// Returns the file in which OpenSSL looks for certificate authorities by default.
std::string system_ca_file()
{
    const char* const named = std::getenv(X509_get_default_cert_file_env());
    return named ? named : X509_get_default_cert_file();
}

std::vector<std::string> names_of(const tls_options& files)
{
    std::vector<std::string> names{files.ca_file.empty() ? system_ca_file() : files.ca_file};
    if (!files.certificate_file.empty())
        names.insert(names.end(), {files.certificate_file, files.key_file});
    return names;
}

void load_certificate(asio::ssl::context& to, const tls_options& files)
{
    error_code error;
    to.use_certificate_chain_file(files.certificate_file, error);
    check(error, "certificate_file", files.certificate_file);
    // Without this callback, OpenSSL would ask for the password on the terminal and block the thread.
    bool needs_password = false;
    to.set_password_callback(
        [&needs_password](std::size_t, asio::ssl::context::password_purpose) {
            needs_password = true;
            return std::string();
        },
        error);
    check(error, "key_file", files.key_file);
    to.use_private_key_file(files.key_file, asio::ssl::context::pem, error);
    const error_code load_error = error;
    // Replaces the callback, which refers to a local variable of this function.
    to.set_password_callback([](std::size_t, asio::ssl::context::password_purpose) { return std::string(); }, error);
    if (needs_password)
        refuse_file(
            "key_file is encrypted, and nobody can be asked for its password; give one that is not", load_error);
    check(load_error, "key_file", files.key_file);
}

} // namespace

void check_tls_options(const tls_options& options, std::string_view backend)
{
    if (options.certificate_file.empty() != options.key_file.empty())
        colock::detail::refuse_options(backend, "a client certificate needs both certificate_file and key_file");
}

void expect_host(::SSL* connection, const std::string& name)
{
    error_code not_numeric;
    asio::ip::make_address(name, not_numeric);
    X509_VERIFY_PARAM* const expected = SSL_get0_param(connection);
    // A name that OpenSSL rejects must match no certificate, instead of every certificate.
    if (!not_numeric) {
        if (X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str()) != 1)
            X509_VERIFY_PARAM_set1_host(expected, "invalid.", 0);
        return;
    }
    X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_host(expected, name.c_str(), name.size()) != 1)
        X509_VERIFY_PARAM_set1_host(expected, "invalid.", 0);
    SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(name.c_str()));
}

std::string certificate_problem(const ::SSL* connection, std::string_view name)
{
    const auto result = SSL_get_verify_result(connection);
    switch (result) {
    case X509_V_OK:
        return {};
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "the certificate is not for " + std::string(name) + "; give the name that it is for as server_name";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return "the certificate is of an unknown authority (" + std::string(X509_verify_cert_error_string(result)) +
               "); give that authority's ca_file";
    default:
        return "the certificate is refused: " + std::string(X509_verify_cert_error_string(result));
    }
}

tls_material::stamp::stamp(std::string file_name) : name(std::move(file_name))
{
    struct ::stat status{};
    if (::stat(name.c_str(), &status) != 0)
        return;
    inode = status.st_ino;
    size = status.st_size;
    modified = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

tls_material::tls_material(const tls_options& files)
    : stamps_(stamps_of(files)), context_(asio::ssl::context::tls_client)
{
    error_code code;
    context_.set_options(
        asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, code);
    context_.set_verify_mode(asio::ssl::verify_peer, code);
    if (code)
        refuse_file("certificates cannot be verified", code);
    if (files.ca_file.empty())
        context_.set_default_verify_paths(code);
    else
        context_.load_verify_file(files.ca_file, code);
    check(code, "ca_file", files.ca_file);
    if (!files.certificate_file.empty())
        load_certificate(context_, files);
}

std::vector<tls_material::stamp> tls_material::stamps_of(const tls_options& files)
{
    std::vector<stamp> stamps;
    for (auto& name : names_of(files))
        stamps.emplace_back(std::move(name));
    return stamps;
}

asio::ssl::context tls_material::share()
{
    SSL_CTX_up_ref(context_.native_handle());
    return asio::ssl::context(context_.native_handle());
}

bool tls_material::is_outdated() const
{
    return std::ranges::any_of(stamps_, [](const stamp& each) { return stamp(each.name) != each; });
}

tls_files::tls_files(tls_options options) : options_(std::move(options))
{
    // OpenSSL reads its configuration and builds its tables on first use, which takes some milliseconds. This is done
    // here, so that it does not block the event loop later.
    static_cast<void>(context());
}

std::optional<std::string> tls_files::refresh()
{
    if (material_ && !material_->is_outdated())
        return std::nullopt;
    try {
        material_ = tls_material(options_);
    } catch (const error& refused) {
        if (!material_)
            throw;
        return "the TLS files have changed and cannot be used, so those from before still are (" + refused.detail() +
               ")";
    }
    return std::nullopt;
}

asio::ssl::context tls_files::context()
{
    return material_ ? material_->share() : asio::ssl::context(asio::ssl::context::tls_client);
}

} // namespace colock::inline v0::remote
