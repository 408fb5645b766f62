/* SPDX-License-Identifier: Apache-2.0 */
/* spill_folder.c - the store of exec/fold over temporary files of engine/file. */
#include "engine/local/spill_folder.h"

#include <stdlib.h>

#include "engine/base/memory.h"
#include "engine/file/temp_file.h"

struct folder_file {
    struct spill_file file; /* First. */
    struct temp_file temp;
};

static status folder_open(struct spill_store *store, struct spill_file **out_file,
                          struct error *err)
{
    struct spill_folder *spill = (struct spill_folder *)store;
    /* Outside the budget: it is when that is used up that files are opened. */
    struct folder_file *file = memory_alloc(NULL, sizeof *file);
    if (file == NULL) return error_memory(err);
    file->file.store = store;
    status result = temp_file_open(spill->folder, &file->temp, err);
    if (result != STATUS_OK) {
        memory_free(NULL, file, sizeof *file);
        return result;
    }
    *out_file = &file->file;
    return STATUS_OK;
}

static void get_on(struct spill_folder *spill)
{
    if (spill->alive != NULL) spill->alive(spill->alive_context);
}

static status folder_write(struct spill_file *file, const void *bytes, size_t size,
                           uint64_t *out_offset, struct error *err)
{
    struct folder_file *own = (struct folder_file *)file;
    struct spill_folder *spill = (struct spill_folder *)file->store;
    *out_offset = own->temp.size;
    TRY(temp_file_append(&own->temp, bytes, size, err));
    atomic_fetch_add(&spill->written_bytes, size);
    get_on(spill);
    return STATUS_OK;
}

static status folder_read(const struct spill_file *file, uint64_t offset, void *bytes, size_t size,
                          struct error *err)
{
    const struct folder_file *own = (const struct folder_file *)file;
    TRY(temp_file_read(&own->temp, offset, bytes, size, err));
    get_on((struct spill_folder *)file->store);
    return STATUS_OK;
}

static void folder_close(struct spill_file *file)
{
    struct folder_file *own = (struct folder_file *)file;
    temp_file_close(&own->temp);
    memory_free(NULL, own, sizeof *own);
}

void spill_folder_init(struct spill_folder *spill, const char *folder)
{
    *spill = (struct spill_folder){
        .store = {folder_open, folder_write, folder_read, folder_close},
        .folder = folder,
    };
}

const char *spill_folder_default(void)
{
    const char *folder = getenv("TMPDIR");
    return folder != NULL && folder[0] != '\0' ? folder : "/var/tmp";
}
