# Calls a function of a notebook with the item of this job's number, and leaves in a file what it returns. It needs only
# what any Python 3 has.
import os
import pickle
import sys
import traceback
import zlib

here = os.path.dirname(os.path.abspath(__file__))
left = os.path.join(os.getcwd(), "_htc_result.pickle")  # the function may go to another directory


def main(number):
    if hasattr(sys.stdout, "reconfigure"):  # since Python 3.7
        sys.stdout.reconfigure(line_buffering=True)  # what is printed can be read at once, and outlives a kill
    with open(os.path.join(here, "htc-function"), "rb") as f:
        content = pickle.loads(zlib.decompress(f.read()))
    wanted, is_here = content["python"], list(sys.version_info[:2])
    if wanted and wanted != is_here:
        sys.exit(
            "The function was pickled by Python %d.%d, and the image has %d.%d: functions need an image with the "
            "version of the notebook, such as python:%d.%d." % tuple(wanted + is_here + wanted)
        )
    pickler = pickle
    if os.path.exists(os.path.join(here, "cloudpickle.zip")):
        sys.path.insert(0, os.path.join(here, "cloudpickle.zip"))
        import cloudpickle as pickler
    try:
        function = pickle.loads(content["function"])
        arguments = [] if content["items"] is None else [pickle.loads(content["items"][number])]
        value = function(*arguments)
    except ModuleNotFoundError as e:
        traceback.print_exc()
        sys.exit(
            "The job has no module %s: take an image that has it, or, if it is your own, send its file: "
            'files=["%s.py"].' % (e.name, str(e.name).partition(".")[0])
        )
    try:
        result = pickler.dumps(value)
    except Exception:
        traceback.print_exc()
        sys.exit(
            "The function has returned a %s that cannot be pickled: have it return what can be, such as numbers, "
            "texts, lists and arrays, or write files." % type(value).__name__
        )
    with open(left, "wb") as f:
        f.write(result)


if __name__ == "__main__":  # processes of multiprocessing import this file, too
    main(int(sys.argv[1]))
