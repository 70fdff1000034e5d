"""Rows: from files of inputs to a table of outputs, a batch at a time.

    options   options about input files
    sources   the files that an --input names, and the format of each
    formats   the table of formats, each with its reader and library
    row_batch rows that were read together, by column
    text_files  texts, packed or plain, in the encoding that they state
    tables    readers of CSV and JSON lines
    arrow_tables  CSV by pyarrow, a chunk at a time
    text_column  texts in pyarrow's memory
    arrays    readers of NumPy's files and of lines of text
    records   a reader of TFRecord files
    parquet_files  Parquet: a reader and a writer
    pictures  pictures as rows
    sounds    sounds as rows
    sound_arguments  the options about sounds
    sound_files  a WAV file for each row
    preprocessing  from pixels to the array that a model takes
    picture_arguments  the options about pictures
    rescaling  the range of pixels that a graph expects
    columns   the columns that feed each input, and the arrays that they become
    cell_values  cells and values of JSON as arrays of an input's type
    feed      batches of feeds, read and decoded beside the run
    results   outputs as columns of a table
    detections  objects in pictures, as one column
    folder_labels  the classes of pictures by the names of their folders
    answers   the table or the pictures of a batch
    accuracy  right and wrong answers
    output_options  the options about answers
    journal   how far a run has come
    output_places  the kinds of places that --output names
    sinks     places of a table: standard output, a file, a folder of shards
    picture_sink  a folder of pictures as the place of a run
    picture_names  the names of those pictures
    output_pictures  outputs as pictures
    drawing   boxes and masks on the rows' pictures
    labels    the names of classes
    plain_values  columns as Python's values
    writers   the table of writers: CSV, JSON lines, .npz, Parquet
    progress  the bar, the rate and the time left
    request   the request of a run: model, sources and place
    input_rows  the rows that a run reads, in batches
    batch_run  the outputs of a batch
    answered_batch  the outputs of batches in turn, several at a time for a served model
    fault_report  rows that cannot be read, told and counted
    predict   all of it in turn
    dry_run   the first batch, without a run
    contact_sheet  pictures as a model sees them, side by side
"""
