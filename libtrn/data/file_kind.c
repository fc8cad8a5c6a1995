/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of file signatures.
 */
#include <string.h>

#include "libtrn/data/file_kind.h"

static bool is_text(const unsigned char *b, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        bool space = b[i] == '\t' || b[i] == '\n' || b[i] == '\r';
        if (!space && (b[i] < 0x20 || b[i] > 0x7E))
            return false;
    }
    return n > 0;
}

const char *trn__file_kind(const unsigned char *b, size_t n)
{
    static const struct {
        const char *magic;
        size_t size;
        const char *name;
    } kinds[] = {
        {"libtrn checkpoint ", 18, "a libtrn checkpoint"},
        {"\x1F\x8B", 2, "gzip"},
        {"\x89HDF\r\n\x1A\n", 8, "HDF5"},
        {"PK\x03\x04", 4, "zip"},
        {"PK\x05\x06", 4, "zip"},
        {"\x89PNG", 4, "PNG"},
        {"\x93NUMPY", 6, "NumPy"},
        {"\xFD"
         "7zXZ",
         5, "xz"},
        {"BZh", 3, "bzip2"},
        {"\x28\xB5\x2F\xFD", 4, "zstd"},
        {"\xFF\xD8\xFF", 3, "JPEG"},
        {"\x7F"
         "ELF",
         4, "ELF"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        if (n >= kinds[i].size && !memcmp(b, kinds[i].magic, kinds[i].size))
            return kinds[i].name;
    }
    return is_text(b, n < 64 ? n : 64) ? "text" : NULL;
}
