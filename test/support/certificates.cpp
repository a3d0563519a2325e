// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "certificates.hpp"

#include <cstdlib>
#include <stdexcept>

namespace colock::testing {

certificates::certificates()
{
    renew();
}

void certificates::renew() const
{
    const auto make = [&](const std::string& name, const std::string& alternative) {
        run("openssl req -newkey rsa:2048 -nodes -keyout " + name + ".key -out " + name + ".csr -subj /CN=x && " +
            "printf 'subjectAltName=" + alternative + "' > " + name + ".ext && openssl x509 -req -in " + name +
            ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile " + name + ".ext -out " + name + ".pem");
    };
    run("openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ours");
    run("openssl req -x509 -newkey rsa:2048 -nodes -keyout no.key -out other.pem -days 2 -subj /CN=theirs");
    make("right", "IP:127.0.0.1");
    make("named", "DNS:named.example");
}

void certificates::run(const std::string& command) const
{
    const auto line = "(cd " + folder.path().string() + " && " + command + ") >/dev/null 2>&1";
    if (std::system(line.c_str()) != 0)
        throw std::runtime_error("openssl cannot make certificates");
}

std::string certificates::file(const std::string& name) const
{
    return folder / name;
}

} // namespace colock::testing
